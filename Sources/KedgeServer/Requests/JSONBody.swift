internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel

/// Reads small JSON bodies.
enum JSONBody {
    /// Maximum size of a JSON body, in bytes.
    static let maxByteCount = 64 << 10

    /// Decodes the body; an empty one gives `whenEmpty`.
    ///
    /// - Throws: `UNSUPPORTED_MEDIA_TYPE`, `REQUEST_TOO_LARGE`, `BAD_REQUEST`.
    static func decode<Value: Decodable>(
        _ type: Value.Type, from request: Request, _ context: KedgeRequestContext,
        whenEmpty: Value? = nil
    ) async throws -> Value {
        let body = try RequestByteBody(request, context: context)
        let mediaType = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        let isJSON = mediaType?.trimmingCharacters(in: .whitespaces) == "application/json"
        // Refuses an announced body before asking the client for it.
        guard isJSON || body.announcedByteCount ?? 0 == 0 else { throw Self.notJSON }
        let bytes = try await collect(body)
        if bytes.isEmpty, let whenEmpty { return whenEmpty }
        guard isJSON else { throw Self.notJSON }
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch let error as DecodingError {
            throw EngineError(
                .badRequest, explain(error), cause: RequestCause.text(error))
        }
    }

    private static var notJSON: EngineError {
        EngineError(.unsupportedMediaType, "Content-Type must be application/json.")
    }

    private static func collect(_ body: RequestByteBody) async throws -> [UInt8] {
        let announced = body.announcedByteCount ?? Int64(maxByteCount)
        guard announced <= maxByteCount else { throw RequestError.tooLargeBody }
        if announced == 0 { return [] }
        // One extra byte detects a body that is too long.
        let buffer = BufferPool(bufferCapacity: Int(announced) + 1, keptCount: 0).take()
        let isTooLarge = try await body.makeReader().fill(buffer, limit: buffer.capacity)
        guard !isTooLarge else { throw RequestError.tooLargeBody }
        return Array(buffer.bytes)
    }

    /// Names the wrong member. The decoder's own text may quote the input, so it stays in the log.
    private static func explain(_ error: DecodingError) -> String {
        let path: [any CodingKey] =
            switch error {
            case .typeMismatch(_, let context), .valueNotFound(_, let context),
                .dataCorrupted(let context):
                context.codingPath
            case .keyNotFound(let key, let context):
                context.codingPath + [key]
            @unknown default:
                []
            }
        guard !path.isEmpty else { return "The body is not a JSON object of the expected form." }
        return "The member \(path.map(\.stringValue).joined(separator: ".")) is missing or invalid."
    }
}
