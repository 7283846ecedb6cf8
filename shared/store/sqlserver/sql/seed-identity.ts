/** The seed's unique index over exactly (Source, ExternalMessageId), by name; `@p1` the inbox's name in brackets. */
export const seedIdentity = `
SELECT x.[name] AS [name] FROM sys.indexes AS x
WHERE x.[object_id] = OBJECT_ID(@p1) AND x.[is_unique] = 1 AND x.[is_disabled] = 0 AND x.[has_filter] = 0
  AND 2 = (SELECT COUNT(*) FROM sys.index_columns AS c
    WHERE c.[object_id] = x.[object_id] AND c.[index_id] = x.[index_id] AND c.[is_included_column] = 0)
  AND 2 = (SELECT COUNT(*) FROM sys.index_columns AS c
    JOIN sys.columns AS n ON n.[object_id] = c.[object_id] AND n.[column_id] = c.[column_id]
    WHERE c.[object_id] = x.[object_id] AND c.[index_id] = x.[index_id] AND c.[is_included_column] = 0
      AND n.[name] IN (N'Source', N'ExternalMessageId'))`;
