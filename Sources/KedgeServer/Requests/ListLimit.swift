internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// The query parameter `limit` of lists.
enum ListLimit {
    /// Returns the number of entries that the client wants on a page.
    ///
    /// - Throws: `BAD_REQUEST` for anything but a number from 1 to `max`.
    static func count(of request: Request, standard: Int, max: Int) throws -> Int {
        guard let text = request.uri.queryParameters.get("limit") else { return standard }
        guard let limit = WireInteger.parse(text), (1...Int64(max)).contains(limit) else {
            throw EngineError(.badRequest, "limit must be a number from 1 to \(max).")
        }
        return Int(limit)
    }
}
