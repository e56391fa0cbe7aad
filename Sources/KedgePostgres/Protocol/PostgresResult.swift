import CPostgres

/// The rows of a statement's result, in binary format. For use on the connection's thread.
@safe package final class PostgresResult {
    private let pointer: OpaquePointer

    /// Takes ownership of libpq's result.
    init(_ pointer: OpaquePointer) { unsafe self.pointer = pointer }

    deinit { unsafe PQclear(pointer) }

    var rowCount: Int { Int(unsafe PQntuples(pointer)) }

    var rows: some Sequence<PostgresRow> {
        (0..<rowCount).lazy.map { PostgresRow(result: self, index: Int32($0)) }
    }

    var firstRow: PostgresRow? { rowCount > 0 ? PostgresRow(result: self, index: 0) : nil }

    /// The server's tag for the end of the statement, such as `COMMIT`.
    var commandTag: String { unsafe String(cString: PQcmdStatus(pointer)) }

    /// The reason for which the server refused the statement; nil if it did not.
    var failure: PostgresFailure? {
        switch unsafe PQresultStatus(pointer) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: return nil
        default:
            // Only the primary message: details quote values.
            let state = field(CChar(UInt8(ascii: "C"))) ?? "XX000"
            let message = field(CChar(UInt8(ascii: "M"))) ?? "no message"
            return PostgresFailure(
                kind: .refused(state: state, constraint: field(CChar(UInt8(ascii: "n")))),
                text: "PostgreSQL \(state): \(message)")
        }
    }

    /// Returns a field of the error, by its letter in the protocol. libpq's names for them are
    /// macros.
    private func field(_ code: CChar) -> String? {
        unsafe PQresultErrorField(pointer, Int32(code)).map { unsafe String(cString: $0) }
    }

    /// Lends the bytes of a cell; nil for NULL.
    func withCell<Value>(
        _ row: Int32, _ column: Int32, _ body: (UnsafeRawBufferPointer?) throws -> Value
    ) rethrows -> Value {
        let columnCount = unsafe PQnfields(pointer)
        precondition(column < columnCount, "a column index is within the result")
        guard unsafe PQgetisnull(pointer, row, column) == 0 else { return try body(nil) }
        return try unsafe body(
            UnsafeRawBufferPointer(
                start: PQgetvalue(pointer, row, column),
                count: Int(PQgetlength(pointer, row, column))))
    }
}

/// One row, read from left to right.
struct PostgresRow {
    private let result: PostgresResult
    private let index: Int32
    private var column: Int32 = 0

    init(result: PostgresResult, index: Int32) {
        self.result = result
        self.index = index
    }

    /// Reads the bytes of the next column; nil for NULL.
    mutating func optionalBytes() -> [UInt8]? {
        defer { column += 1 }
        return unsafe result.withCell(index, column) { cell in
            unsafe cell.map { unsafe [UInt8]($0) }
        }
    }

    /// Reads the text of the next column; nil for NULL.
    mutating func optionalText() -> String? {
        optionalBytes().map { String(decoding: $0, as: UTF8.self) }
    }

    /// Reads the `bigint` or `integer` of the next column; nil for NULL.
    mutating func optionalInteger() -> Int64? {
        defer { column += 1 }
        return unsafe result.withCell(index, column) { cell in
            unsafe cell.map { unsafe BinaryReader.integer($0) }
        }
    }

    mutating func text() throws -> String { try present(optionalText()) }
    mutating func integer() throws -> Int64 { try present(optionalInteger()) }
    mutating func bytes() throws -> [UInt8] { try present(optionalBytes()) }

    /// Reads the `boolean` of the next column.
    mutating func bool() throws -> Bool { try bytes() == [1] }

    /// Reads the elements of the array in the next column; empty for NULL.
    mutating func array<Element>(_ decode: (UnsafeRawBufferPointer?) throws -> Element) throws
        -> [Element]
    {
        defer { column += 1 }
        return try unsafe result.withCell(index, column) { cell in
            guard let cell = unsafe cell else { return [] }
            return try unsafe BinaryReader.array(cell, decode)
        }
    }

    private func present<Value>(_ value: Value?) throws -> Value {
        guard let value else {
            throw PostgresFailure(kind: .nonsense, text: "column \(column) is NULL")
        }
        return value
    }
}
