internal import KedgeFiles

/// The content of a PEM file, with the permissions that it had when it was read.
struct PEMFile {
    private static let maxByteCount: Int64 = 1 << 20

    let bytes: [UInt8]
    let permissions: UInt16

    /// Reads a file. Follows symbolic links, which point to the latest certificate in the folders
    /// of certbot. Blocks.
    static func read(
        _ file: CertificateFailure.File, at path: String, from fileSystem: any FileSystem
    ) throws(CertificateFailure) -> PEMFile {
        let opened: any OpenFile
        let status: FileStatus
        do throws(FileError) {
            opened = try fileSystem.open(path, .readFollowingLinks)
            // Of the opened file: another one may take its name at any time.
            status = try opened.status()
        } catch {
            throw CertificateFailure(file, path, .unreadable(cause(of: error)))
        }
        guard status.isRegularFile, status.byteCount <= maxByteCount else {
            throw CertificateFailure(file, path, .notCertificateFile)
        }
        do throws(FileError) {
            let bytes = try content(of: opened, byteCount: Int(status.byteCount))
            try opened.close()
            return PEMFile(bytes: bytes, permissions: status.permissions ?? 0)
        } catch {
            throw CertificateFailure(file, path, .unreadable(cause(of: error)))
        }
    }

    private static func content(
        of file: any OpenFile, byteCount: Int
    ) throws(FileError) -> [UInt8] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(1, byteCount), alignment: 1)
        defer { buffer.deallocate() }
        let count = try file.read(into: buffer, at: 0)
        return Array(buffer.prefix(min(count, byteCount)))
    }

    private static func cause(of error: FileError) -> String {
        switch error.code {
        case .notFound: "no such file"
        case .permission: "permission denied"
        default: error.debugDescription
        }
    }
}
