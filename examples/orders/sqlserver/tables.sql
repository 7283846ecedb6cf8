-- The example application's own tables. Nothing here keeps an order from having two invoices or two emails:
-- that there is one of each is Relaybox's doing, and can be checked.
IF OBJECT_ID(N'Orders') IS NULL
  CREATE TABLE Orders (
    Id           UNIQUEIDENTIFIER NOT NULL PRIMARY KEY,
    Customer     NVARCHAR(200)    NOT NULL,
    Item         NVARCHAR(200)    NOT NULL,
    AmountCents  INT              NOT NULL,
    PlacedAt     DATETIMEOFFSET   NOT NULL DEFAULT (SYSDATETIMEOFFSET())
  );

IF OBJECT_ID(N'Invoices') IS NULL
  CREATE TABLE Invoices (
    Id           UNIQUEIDENTIFIER NOT NULL DEFAULT (NEWID()) PRIMARY KEY,
    OrderId      UNIQUEIDENTIFIER NOT NULL,
    AmountCents  INT              NOT NULL,
    WrittenAt    DATETIMEOFFSET   NOT NULL DEFAULT (SYSDATETIMEOFFSET())
  );

IF OBJECT_ID(N'Emails') IS NULL
  CREATE TABLE Emails (
    Id           UNIQUEIDENTIFIER NOT NULL DEFAULT (NEWID()) PRIMARY KEY,
    OrderId      UNIQUEIDENTIFIER NOT NULL,
    Recipient    NVARCHAR(200)    NOT NULL,
    WrittenAt    DATETIMEOFFSET   NOT NULL DEFAULT (SYSDATETIMEOFFSET())
  );
