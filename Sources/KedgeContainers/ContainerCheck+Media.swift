extension ContainerCheck {
    /// Walks the boxes of the top level: they fill the file exactly, and one of them is the index. A
    /// camera that lost power leaves a film without one.
    func isoBaseMedia() throws(Failure) -> ContainerVerdict {
        var offset: Int64 = 0
        var hasIndex = false
        for _ in 0..<Self.maxPartCount {
            guard offset < byteCount else {
                return hasIndex
                    ? .complete(.isoBaseMedia) : .truncated(.isoBaseMedia, .indexMissing)
            }
            let head = try bytes(at: offset, count: 8)
            guard head.count == 8 else { return .truncated(.isoBaseMedia, .pieceCutShort) }
            // `moov` of films, `meta` of pictures.
            let type = head[4...]
            if [Array("moov".utf8), Array("meta".utf8)].contains(where: { type.elementsEqual($0) })
            {
                hasIndex = true
            }
            var length = head[..<4].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            var headByteCount: UInt64 = 8
            switch length {
            case 0:
                // To the end of the file, wherever that is: nothing shows whether it is the right one.
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
