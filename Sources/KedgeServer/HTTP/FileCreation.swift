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
        try declaredFileName(of: request) ?? defaultFileName
    }

    /// A safe file name from `Content-Disposition`; nil without one.
    ///
    /// - Throws: `BAD_REQUEST` for a name that cannot be decoded.
    static func declaredFileName(of request: Request) throws -> String? {
        guard let header = request.headers[.contentDisposition] else { return nil }
        if let name = fileName(in: header) { return FileName.sanitized(name) }
        // The first of repeated parameters counts, so this adds a name only to a field without one.
        guard fileName(in: "\(header); filename=\(defaultFileName)") != nil else {
            throw EngineError(.badRequest, "Content-Disposition has no readable file name.")
        }
        return nil
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
