/// A file on a server that was restarted after the upload, so that its usage is that of reading.
struct StoredFile {
    let server: KedgeServer
    let path: String
    let id: String

    /// Uploads the first bytes of the source.
    ///
    /// - Parameter certificate: The certificate of the server that was started again; nil for plain
    ///   HTTP.
    init(_ bench: Bench, byteCount: Int, certificate: Certificate? = nil) throws {
        let content = try Content(
            bench.source, byteCount: byteCount, chunkByteCount: bench.scale.chunkByteCount)
        let receiver = try KedgeServer(bench)
        let connection = try receiver.connect()
        let session = try UploadSession.create(for: content, on: connection)
        try session.putAll(to: receiver, connectionCount: 4)
        id = try session.finalize(on: connection).remoteFileId
        path = "/files/\(id)"
        // A server may write past the page cache, and the downloads to measure read from it.
        try Curl.fetch(bench, path, from: receiver, to: "/dev/null")
        try receiver.stop()
        server = try KedgeServer(
            bench, certificate: certificate, directory: receiver.directory)
    }
}
