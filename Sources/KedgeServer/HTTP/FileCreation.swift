internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension ContentDisposition {
    /// Name of a file whose upload names none.
    private static let defaultFileName = "file"

    /// A safe file name from `Content-Disposition`, or a default without one.
    ///
    /// - Throws: `BAD_REQUEST` for a name that cannot be decoded.
    static func fileName(of request: Request) throws -> String {
        guard let header = request.headers[.contentDisposition] else { return defaultFileName }
        // The first of repeated parameters counts, so this adds a name only to a field without one.
        let named = "\(header); filename=\(defaultFileName)"
        guard
            let name = fileName(in: header)
                ?? fileName(in: named)
        else {
            throw EngineError(.badRequest, "Content-Disposition has no readable file name.")
        }
        return FileName.sanitized(name)
    }
}

extension Response {
    /// The response for a new file.
    static func created(_ file: FileRecord) -> Response {
        var response = Response.json(FinalizeResponse(file), status: .created)
        response.headers[.location] = "/files/\(file.id)"
        response.headers[.eTag] = file.etag
        return response
    }
}
