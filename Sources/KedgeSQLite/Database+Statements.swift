internal import Foundation
internal import GRDB
internal import KedgeModel

// Every statement is compiled once and kept by the connection; every value is a bound parameter.
extension Database {
    /// Runs a statement; returns how many rows it changed.
    @discardableResult
    func run(_ sql: String, _ arguments: StatementArguments) throws -> Int {
        try cachedStatement(sql: sql).execute(arguments: arguments)
        return changesCount
    }

    /// The first row, if any.
    func row(_ sql: String, _ arguments: StatementArguments) throws -> Row? {
        try Row.fetchOne(try cachedStatement(sql: sql), arguments: arguments)
    }

    /// All rows.
    func rows(_ sql: String, _ arguments: StatementArguments) throws -> [Row] {
        try Row.fetchAll(try cachedStatement(sql: sql), arguments: arguments)
    }

    /// Hands each row to the closure without keeping it: for results of many rows.
    func forEachRow(
        _ sql: String, _ arguments: StatementArguments, _ body: (Row) throws -> Void
    ) throws {
        let rows = try Row.fetchCursor(try cachedStatement(sql: sql), arguments: arguments)
        while let row = try rows.next() { try body(row) }
    }

    /// True when the query has a row.
    func exists(_ sql: String, _ arguments: StatementArguments) throws -> Bool {
        try row(sql, arguments) != nil
    }
}

extension SHA256Digest {
    /// The form in a column.
    var data: Data { Data(bytes) }
}

extension [UInt8] {
    /// The form in a column.
    var data: Data { Data(self) }
}
