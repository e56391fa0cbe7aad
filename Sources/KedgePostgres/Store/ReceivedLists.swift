internal import KedgeEngine
internal import KedgeModel

// A list of chunks arrives as one array per column, so that a session with its lists is one row.

extension CommittedChunk {
    /// Reads arrays of indexes, byte counts, digests and locations.
    static func list(_ row: inout PostgresRow) throws -> [CommittedChunk] {
        let indexes = try row.integers()
        let byteCounts = try row.integers()
        let digests = try row.optionalDigests()
        let locations = try row.optionalTexts()
        return try indexes.indices.map { position in
            guard let digest = digests[position] else {
                throw MetadataError.failed("a chunk has no digest")
            }
            return CommittedChunk(
                index: Int(indexes[position]), byteCount: byteCounts[position], digest: digest,
                location: locations[position])
        }
    }
}

extension PartialRecord {
    /// Reads arrays of indexes, byte counts, hash states, declared digests, locations and kinds.
    /// Kind 1 is a partial in doubt, 2 a rival.
    static func list(_ row: inout PostgresRow) throws -> [PartialRecord] {
        let indexes = try row.integers()
        let byteCounts = try row.integers()
        let states = try row.byteArrays()
        let digests = try row.optionalDigests()
        let locations = try row.optionalTexts()
        let kinds = try row.integers()
        return indexes.indices.map { position in
            PartialRecord(
                index: Int(indexes[position]), byteCount: byteCounts[position],
                hashState: states[position], declaredDigest: digests[position],
                location: locations[position], isRival: kinds[position] == 2,
                isInDoubt: kinds[position] == 1)
        }
    }
}

extension PostgresRow {
    fileprivate mutating func integers() throws -> [Int64] {
        try unsafe array { cell in unsafe cell.map { unsafe BinaryReader.integer($0) } ?? 0 }
    }

    fileprivate mutating func byteArrays() throws -> [[UInt8]] {
        try unsafe array { cell in unsafe cell.map { unsafe [UInt8]($0) } ?? [] }
    }

    fileprivate mutating func optionalTexts() throws -> [String?] {
        try unsafe array { cell in unsafe cell.map { unsafe String(decoding: $0, as: UTF8.self) } }
    }

    fileprivate mutating func optionalDigests() throws -> [SHA256Digest?] {
        try unsafe array { cell in
            guard let cell = unsafe cell else { return nil }
            guard let digest = unsafe SHA256Digest(bytes: cell) else {
                throw MetadataError.failed("an array has a value that is not a digest")
            }
            return digest
        }
    }
}
