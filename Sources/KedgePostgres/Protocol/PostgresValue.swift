internal import KedgeModel

/// A statement's parameter, in PostgreSQL's binary format. It has an explicit type, so the server
/// does not infer one.
package struct PostgresValue {
    /// The object identifier of the type, from `pg_type.dat`; these never change.
    let type: UInt32
    /// Nil for NULL.
    let bytes: [UInt8]?

    static func bool(_ value: Bool) -> PostgresValue {
        PostgresValue(type: 16, bytes: [value ? 1 : 0])
    }

    static func bytea(_ value: [UInt8]?) -> PostgresValue { PostgresValue(type: 17, bytes: value) }

    static func int8(_ value: Int64?) -> PostgresValue {
        PostgresValue(type: 20, bytes: value.map { bigEndian($0) })
    }

    static func int4(_ value: Int) -> PostgresValue {
        PostgresValue(type: 23, bytes: bigEndian(Int32(clamping: value)))
    }

    /// Encodes a text. The server refuses a NUL in it: the length is explicit, so the text is not
    /// cut off there.
    static func text(_ value: String?) -> PostgresValue {
        PostgresValue(type: 25, bytes: value.map { Array($0.utf8) })
    }

    static func time(_ value: Timestamp) -> PostgresValue { .int8(value.millisecondsSinceEpoch) }

    static func digest(_ value: SHA256Digest?) -> PostgresValue { .bytea(value?.bytes) }

    static func int4s(_ values: [Int]) -> PostgresValue {
        array(1007, of: 23, values.map { bigEndian(Int32(clamping: $0)) })
    }

    static func int8s(_ values: [Int64]) -> PostgresValue {
        array(1016, of: 20, values.map { bigEndian($0) })
    }

    static func texts(_ values: [String?]) -> PostgresValue {
        array(1009, of: 25, values.map { $0.map { Array($0.utf8) } })
    }

    static func byteas(_ values: [[UInt8]]) -> PostgresValue { array(1001, of: 17, values) }

    /// Encodes one dimension in the format of `array_recv`: number of dimensions, whether there are
    /// NULLs, type of the elements, length and lower bound, then each element with its length.
    private static func array(
        _ type: UInt32, of element: UInt32, _ elements: [[UInt8]?]
    ) -> PostgresValue {
        var bytes: [UInt8] = []
        bytes += bigEndian(Int32(1))
        bytes += bigEndian(Int32(elements.contains { $0 == nil } ? 1 : 0))
        bytes += bigEndian(element)
        bytes += bigEndian(Int32(elements.count))
        bytes += bigEndian(Int32(1))
        for element in elements {
            bytes += bigEndian(Int32(element?.count ?? -1))
            bytes += element ?? []
        }
        return PostgresValue(type: type, bytes: bytes)
    }

    private static func bigEndian<Integer: FixedWidthInteger>(_ value: Integer) -> [UInt8] {
        stride(from: Integer.bitWidth - 8, through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: value >> $0)
        }
    }
}
