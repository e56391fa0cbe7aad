/// A server that speaks S3, with one bucket, in the region `us-east-1`.
package protocol ObjectStoreServer: Sendable {
    /// Its address and credentials.
    var address: ObjectStoreAddress { get }
    /// Stops the server and removes the objects that it stored.
    func stop() async
}

extension ObjectStoreServer {
    /// Its URL, without the bucket.
    package var endpoint: String { address.endpoint }
    /// Name of the only key.
    package var accessKey: String { address.accessKey }
    /// The only key.
    package var secretKey: String { address.secretKey }
    /// Name of the bucket, which exists.
    package var bucket: String { address.bucket }
}

/// The address of a server that speaks S3, and its credentials.
package struct ObjectStoreAddress: Decodable, Sendable {
    package var endpoint: String
    package var accessKey: String
    package var secretKey: String
    package var bucket: String
}

/// A command without arguments.
struct PlainCommand: Encodable, Sendable {
    var command: String
}

/// `rclone serve s3` over a directory: a real server.
package final class RcloneServer: ObjectStoreServer {
    private let host: ServerHost
    package let address: ObjectStoreAddress

    private init(host: ServerHost, address: ObjectStoreAddress) {
        self.host = host
        self.address = address
    }

    /// Starts it.
    ///
    /// - Throws: ``TestFailure``.
    package static func start() async throws -> RcloneServer {
        let (host, address) = try await ServerHost.start("rclone", about: ObjectStoreAddress.self)
        return RcloneServer(host: host, address: address)
    }

    /// Paths of all files below its bucket, including those that it hides during a write.
    package func left() async throws -> [String] {
        try await host.ask(PlainCommand(command: "left"))
    }

    package func stop() async { await host.stop() }
}

/// moto: has the complete interface, but checks no signatures.
package final class MotoServer: ObjectStoreServer {
    private let host: ServerHost
    package let address: ObjectStoreAddress

    private init(host: ServerHost, address: ObjectStoreAddress) {
        self.host = host
        self.address = address
    }

    /// Starts it.
    ///
    /// - Throws: ``TestFailure``.
    package static func start() async throws -> MotoServer {
        let (host, address) = try await ServerHost.start("moto", about: ObjectStoreAddress.self)
        return MotoServer(host: host, address: address)
    }

    package func stop() async { await host.stop() }
}
