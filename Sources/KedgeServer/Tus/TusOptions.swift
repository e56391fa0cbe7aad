internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine

extension TusRoutes {
    /// All extensions of tus 1.0, in the order of its specification.
    static let extensions = [
        "creation", "creation-defer-length", "creation-with-upload", "expiration", "checksum",
        "checksum-trailer", "termination", "concatenation", "concatenation-unfinished",
    ]

    /// `OPTIONS`: announces the version, extensions, limits and algorithms of the server.
    @Sendable func options(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        Response(
            status: .noContent,
            headers: [
                TusField.version: TusField.supportedVersion,
                TusField.extensions: Self.extensions.joined(separator: ","),
                TusField.maxSize: String(engine.configuration.maxFileSize),
                TusField.checksumAlgorithm: TusChecksum.algorithms,
            ])
    }
}
