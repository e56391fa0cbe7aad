extension ContainerCheck {
    /// Walks the segments to the first scan, then searches for the marker that ends the image.
    /// Ignores data after it: cameras append previews and videos there.
    func jpeg() throws(Failure) -> ContainerCheckResult {
        var offset: Int64 = 2
        for _ in 0..<Self.maxPartCount {
            let head = try bytes(at: offset, count: 4)
            guard head.count >= 2 else { return .truncated(.jpeg, .endMissing) }
            guard head[0] == 0xFF else { return .unknown }
            switch head[1] {
            case 0xFF:
                // Any number of fill bytes may precede a marker.
                offset += 1
            case 0xD9:
                return .complete(.jpeg)
            case 0x01, 0xD0...0xD7:
                offset += 2
            case let mark:
                guard head.count == 4 else { return .truncated(.jpeg, .pieceCutShort) }
                let length = UInt64(head[2]) << 8 | UInt64(head[3])
                guard length >= 2 else { return .unknown }
                guard let next = end(of: offset + 2, length: length) else {
                    return .truncated(.jpeg, .pieceCutShort)
                }
                if mark == 0xDA { return try jpegScan(from: next) }
                offset = next
            }
        }
        return .unknown
    }

    /// Searches for 0xFF 0xD9. Compressed data does not contain it: a zero follows each 0xFF there.
    private func jpegScan(from start: Int64) throws(Failure) -> ContainerCheckResult {
        guard byteCount - start <= Self.maxSearchByteCount else { return .unknown }
        var offset = start
        while offset < byteCount {
            // One byte more, for a marker across two blocks.
            let block = try bytes(at: offset, count: Int(Self.blockByteCount) + 1)
            if zip(block, block.dropFirst()).contains(where: { $0 == 0xFF && $1 == 0xD9 }) {
                return .complete(.jpeg)
            }
            offset += Self.blockByteCount
        }
        return .truncated(.jpeg, .endMissing)
    }

    /// Walks the chunks to `IEND`.
    func png() throws(Failure) -> ContainerCheckResult {
        var offset: Int64 = 8
        for _ in 0..<Self.maxPartCount {
            guard let length = try number(at: offset, byteCount: 4) else {
                return .truncated(.png, .endMissing)
            }
            // Length, type and checksum in addition to the data.
            guard let next = end(of: offset, length: length + 12) else {
                return .truncated(.png, .pieceCutShort)
            }
            if try bytes(at: offset + 4, count: 4) == Array("IEND".utf8) {
                return .complete(.png)
            }
            offset = next
        }
        return .unknown
    }
}
