internal import Foundation
internal import GRDB
internal import KedgeModel

// The connection caches compiled statements. All values are bound parameters.
extension Database {
    /// Runs a statement. Returns the number of changed rows.
    @discardableResult
    func run(_ sql: String, _ arguments: StatementArguments) throws -> Int {
        try cachedStatement(sql: sql).execute(arguments: arguments)
        return changesCount
    }

    /// Returns the first row, if any.
    func row(_ sql: String, _ arguments: StatementArguments) throws -> Row? {
        try Row.fetchOne(try cachedStatement(sql: sql), arguments: arguments)
    }

    /// Returns all rows.
    func rows(_ sql: String, _ arguments: StatementArguments) throws -> [Row] {
        try Row.fetchAll(try cachedStatement(sql: sql), arguments: arguments)
    }

    /// Calls the closure for each row without keeping it, for large results.
    func forEachRow(
        _ sql: String, _ arguments: StatementArguments, _ body: (Row) throws -> Void
    ) throws {
        let rows = try Row.fetchCursor(try cachedStatement(sql: sql), arguments: arguments)
        while let row = try rows.next() { try body(row) }
    }

    /// Whether the query has a row.
    func exists(_ sql: String, _ arguments: StatementArguments) throws -> Bool {
        try row(sql, arguments) != nil
    }
}

extension SHA256Digest {
    /// The digest as a column's value.
    var data: Data { Data(bytes) }
}

extension [UInt8] {
    /// The bytes as a column's value.
    var data: Data { Data(self) }
}
