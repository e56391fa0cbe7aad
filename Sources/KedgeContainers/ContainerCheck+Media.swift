extension ContainerCheck {
    /// Walks the top-level boxes: they must fill the file exactly and include the index. A camera
    /// that lost power leaves a video without one.
    func isoBaseMedia() throws(Failure) -> ContainerCheckResult {
        var offset: Int64 = 0
        var hasIndex = false
        for _ in 0..<Self.maxPartCount {
            guard offset < byteCount else {
                return hasIndex
                    ? .complete(.isoBaseMedia) : .truncated(.isoBaseMedia, .indexMissing)
            }
            let head = try bytes(at: offset, count: 8)
            guard head.count == 8 else { return .truncated(.isoBaseMedia, .pieceCutShort) }
            // `moov` of videos, `meta` of images.
            let type = head[4...]
            if [Array("moov".utf8), Array("meta".utf8)].contains(where: { type.elementsEqual($0) })
            {
                hasIndex = true
            }
            var length = head[..<4].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            var headByteCount: UInt64 = 8
            switch length {
            case 0:
                // The box extends to the end of the file, which may not be the right one.
                return hasIndex ? .complete(.isoBaseMedia) : .unknown
            case 1:
                guard let large = try number(at: offset + 8, byteCount: 8) else {
                    return .truncated(.isoBaseMedia, .pieceCutShort)
                }
                length = large
                headByteCount = 16
            default:
                break
            }
            guard length >= headByteCount else { return .unknown }
            guard let next = end(of: offset, length: length) else {
                return .truncated(.isoBaseMedia, .pieceCutShort)
            }
            offset = next
        }
        return .unknown
    }
}
