/// Checks whether a file of a well-known format is complete.
///
/// Reads only the framing of the content: a few bytes per part of the file, except that the end of
/// a JPEG has to be searched for. No file content can cause a read past its end, overflow 64 bits,
/// or exceed a bounded number of steps.
public struct ContainerCheck<Failure: Error> {
    /// Limit of parts examined per file; beyond it, the result is ``ContainerCheckResult/unknown``.
    static var maxPartCount: Int { 200_000 }
    /// Limit of bytes searched for the end of a JPEG.
    static var maxSearchByteCount: Int64 { 512 << 20 }
    /// Bytes searched at a time.
    static var blockByteCount: Int64 { 64 << 10 }

    let byteCount: Int64
    private let readBytes: (_ offset: Int64, _ count: Int) throws(Failure) -> [UInt8]

    /// Creates a check of one file.
    ///
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

    /// Checks the file in the format that its first bytes indicate, whatever its name.
    ///
    /// - Throws: The errors of the read function.
    public func verdict() throws(Failure) -> ContainerCheckResult {
        let start = try bytes(at: 0, count: 16)
        if start.starts(with: [0xFF, 0xD8, 0xFF]) { return try jpeg() }
        if start.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            return try png()
        }
        if start.starts(with: Array("%PDF-".utf8)) { return try pdf() }
        // Other boxes may come first, but then the format is uncertain.
        if start.dropFirst(4).starts(with: Array("ftyp".utf8)) { return try isoBaseMedia() }
        return .unknown
    }

    /// Returns bytes at an offset; fewer at the end of the file.
    func bytes(at offset: Int64, count: Int) throws(Failure) -> [UInt8] {
        guard offset < byteCount else { return [] }
        return try readBytes(offset, Int(min(Int64(count), byteCount - offset)))
    }

    /// Returns a big-endian number of up to eight bytes; nil if the file ends within it.
    func number(at offset: Int64, byteCount count: Int) throws(Failure) -> UInt64? {
        let bytes = try bytes(at: offset, count: count)
        guard bytes.count == count else { return nil }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Returns the end of a part that begins at `start`; nil if it is outside the file.
    func end(of start: Int64, length: UInt64) -> Int64? {
        guard let length = Int64(exactly: length), length <= byteCount - start else { return nil }
        return start + length
    }
}
