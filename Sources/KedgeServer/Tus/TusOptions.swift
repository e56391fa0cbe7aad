internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine

extension TusRoutes {
    /// Extensions of tus 1.0 in the order of its text: all of them.
    static let extensions = [
        "creation", "creation-defer-length", "creation-with-upload", "expiration", "checksum",
        "checksum-trailer", "termination", "concatenation", "concatenation-unfinished",
    ]

    /// `OPTIONS`: what the server can do.
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
