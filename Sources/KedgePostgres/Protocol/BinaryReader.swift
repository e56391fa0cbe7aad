/// Reads PostgreSQL's binary format.
enum BinaryReader {
    /// Reads a signed big-endian integer of any width.
    static func integer(_ bytes: UnsafeRawBufferPointer) -> Int64 {
        guard let first = unsafe bytes.first else { return 0 }
        var value: Int64 = first & 0x80 == 0 ? 0 : -1
        for index in bytes.indices { value = unsafe value << 8 | Int64(bytes[index]) }
        return value
    }

    /// Reads an array of at most one dimension, in the format of `array_send`; see
    /// ``PostgresValue``. The closure gets nil for NULL.
    static func array<Element>(
        _ bytes: UnsafeRawBufferPointer, _ decode: (UnsafeRawBufferPointer?) throws -> Element
    ) throws -> [Element] {
        var offset = 0
        func next(_ count: Int) throws -> UnsafeRawBufferPointer {
            guard count >= 0, count <= bytes.count - offset else {
                throw PostgresFailure(kind: .nonsense, text: "an array is shorter than declared")
            }
            defer { offset += count }
            return unsafe UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
        }
        func nextInteger() throws -> Int { try unsafe Int(integer(next(4))) }

        let dimensionCount = try nextInteger()
        _ = unsafe try next(8)
        guard dimensionCount > 0 else { return [] }
        guard dimensionCount == 1 else {
            throw PostgresFailure(kind: .nonsense, text: "an array has several dimensions")
        }
        let count = try nextInteger()
        _ = unsafe try next(4)
        var elements: [Element] = []
        elements.reserveCapacity(count)
        for _ in 0..<count {
            let length = try nextInteger()
            elements.append(try unsafe decode(length < 0 ? nil : next(length)))
        }
        return elements
    }
}
