/// Looks whether a file of a well-known format is all there (R21).
///
/// It reads what frames the content, not the content: a few bytes for each part of the file, except that
/// the end of a JPEG has to be searched for. Nothing in a file can make it read further than the
/// file, compute past 64 bits, or take more than a bounded number of steps.
public struct ContainerCheck<Failure: Error> {
    /// Parts of one file that are looked at before it counts as too strange to be judged.
    static var maxPartCount: Int { 200_000 }
    /// Bytes of one JPEG that are searched for its end.
    static var maxSearchByteCount: Int64 { 512 << 20 }
    /// Bytes searched at a time.
    static var blockByteCount: Int64 { 64 << 10 }

    let byteCount: Int64
    private let readBytes: (_ offset: Int64, _ count: Int) throws(Failure) -> [UInt8]

    /// - Parameters:
    ///   - byteCount: Size of the file.
    ///   - read: Reads up to `count` bytes at an offset; fewer only at the end of the file.
    public init(
        byteCount: Int64,
        read: @escaping (_ offset: Int64, _ count: Int) throws(Failure) -> [UInt8]
    ) {
        self.byteCount = byteCount
        self.readBytes = read
    }

    /// Judges the file by its first bytes, whatever it is called.
    ///
    /// - Throws: what reading throws.
    public func verdict() throws(Failure) -> ContainerVerdict {
        let start = try bytes(at: 0, count: 16)
        if start.starts(with: [0xFF, 0xD8, 0xFF]) { return try jpeg() }
        if start.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            return try png()
        }
        if start.starts(with: Array("%PDF-".utf8)) { return try pdf() }
        // A file may begin with other boxes, but then it may as well be no such file at all.
        if start.dropFirst(4).starts(with: Array("ftyp".utf8)) { return try isoBaseMedia() }
        return .unknown
    }

    /// Bytes at an offset, fewer at the end of the file.
    func bytes(at offset: Int64, count: Int) throws(Failure) -> [UInt8] {
        guard offset < byteCount else { return [] }
        return try readBytes(offset, Int(min(Int64(count), byteCount - offset)))
    }

    /// A big-endian number of up to eight bytes; nil when the file ends before it does.
    func number(at offset: Int64, byteCount count: Int) throws(Failure) -> UInt64? {
        let bytes = try bytes(at: offset, count: count)
        guard bytes.count == count else { return nil }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The end of a part that begins at `start`; nil when it lies outside the file.
    func end(of start: Int64, length: UInt64) -> Int64? {
        guard let length = Int64(exactly: length), length <= byteCount - start else { return nil }
        return start + length
    }
}
