/** The tables as the seed's own script creates them ("PostgreSQL Schema"), word for word but for the case. */
export const seedSchema = `
CREATE TABLE IF NOT EXISTS public.inbox_messages
(
    id                   UUID         PRIMARY KEY,
    source               VARCHAR(200) NOT NULL,
    external_message_id  VARCHAR(300) NOT NULL,
    message_type         VARCHAR(200) NOT NULL,
    payload              TEXT         NOT NULL,
    headers              JSONB        NULL,
    correlation_id       VARCHAR(200) NULL,
    created_at_utc       TIMESTAMPTZ  NOT NULL,
    next_attempt_at_utc  TIMESTAMPTZ  NULL,
    retry_count          INTEGER      NOT NULL DEFAULT 0,
    max_retries          INTEGER      NOT NULL DEFAULT 5,
    state                INTEGER      NOT NULL DEFAULT 0,
    locked_until_utc     TIMESTAMPTZ  NULL,
    processed_at_utc     TIMESTAMPTZ  NULL,
    last_error           TEXT         NULL
);

CREATE UNIQUE INDEX IF NOT EXISTS ux_inbox_messages_source_external_message_id
    ON public.inbox_messages (source, external_message_id);

CREATE INDEX IF NOT EXISTS ix_inbox_messages_polling
    ON public.inbox_messages (state, next_attempt_at_utc, created_at_utc);

CREATE TABLE IF NOT EXISTS public.outbox_messages
(
    id                   UUID         PRIMARY KEY,
    destination          VARCHAR(300) NOT NULL,
    message_type         VARCHAR(200) NOT NULL,
    payload              TEXT         NOT NULL,
    headers              JSONB        NULL,
    correlation_id       VARCHAR(200) NULL,
    created_at_utc       TIMESTAMPTZ  NOT NULL,
    next_attempt_at_utc  TIMESTAMPTZ  NULL,
    retry_count          INTEGER      NOT NULL DEFAULT 0,
    max_retries          INTEGER      NOT NULL DEFAULT 5,
    state                INTEGER      NOT NULL DEFAULT 0,
    locked_until_utc     TIMESTAMPTZ  NULL,
    processed_at_utc     TIMESTAMPTZ  NULL,
    last_error           TEXT         NULL
);

CREATE INDEX IF NOT EXISTS ix_outbox_messages_polling
    ON public.outbox_messages (state, next_attempt_at_utc, created_at_utc);
`;

/** The same for SQL Server ("SQL Server Schema"), word for word. */
export const sqlServerSeedSchema = `
CREATE TABLE [dbo].[InboxMessages]
(
    [Id]                 UNIQUEIDENTIFIER NOT NULL PRIMARY KEY,
    [Source]             NVARCHAR(200)    NOT NULL,
    [ExternalMessageId]  NVARCHAR(300)    NOT NULL,
    [MessageType]        NVARCHAR(200)    NOT NULL,
    [Payload]            NVARCHAR(MAX)    NOT NULL,
    [Headers]            NVARCHAR(MAX)    NULL,
    [CorrelationId]      NVARCHAR(200)    NULL,
    [CreatedAtUtc]       DATETIMEOFFSET   NOT NULL,
    [NextAttemptAtUtc]   DATETIMEOFFSET   NULL,
    [RetryCount]         INT              NOT NULL DEFAULT (0),
    [MaxRetries]         INT              NOT NULL DEFAULT (5),
    [State]              INT              NOT NULL DEFAULT (0),
    [LockedUntilUtc]     DATETIMEOFFSET   NULL,
    [ProcessedAtUtc]     DATETIMEOFFSET   NULL,
    [LastError]          NVARCHAR(MAX)    NULL
);

CREATE UNIQUE INDEX [UX_InboxMessages_Source_ExternalMessageId]
    ON [dbo].[InboxMessages] ([Source], [ExternalMessageId]);

CREATE INDEX [IX_InboxMessages_Polling]
    ON [dbo].[InboxMessages] ([State], [NextAttemptAtUtc], [CreatedAtUtc]);

CREATE TABLE [dbo].[OutboxMessages]
(
    [Id]                 UNIQUEIDENTIFIER NOT NULL PRIMARY KEY,
    [Destination]        NVARCHAR(300)    NOT NULL,
    [MessageType]        NVARCHAR(200)    NOT NULL,
    [Payload]            NVARCHAR(MAX)    NOT NULL,
    [Headers]            NVARCHAR(MAX)    NULL,
    [CorrelationId]      NVARCHAR(200)    NULL,
    [CreatedAtUtc]       DATETIMEOFFSET   NOT NULL,
    [NextAttemptAtUtc]   DATETIMEOFFSET   NULL,
    [RetryCount]         INT              NOT NULL DEFAULT (0),
    [MaxRetries]         INT              NOT NULL DEFAULT (5),
    [State]              INT              NOT NULL DEFAULT (0),
    [LockedUntilUtc]     DATETIMEOFFSET   NULL,
    [ProcessedAtUtc]     DATETIMEOFFSET   NULL,
    [LastError]          NVARCHAR(MAX)    NULL
);

CREATE INDEX [IX_OutboxMessages_Polling]
    ON [dbo].[OutboxMessages] ([State], [NextAttemptAtUtc], [CreatedAtUtc]);
`;
