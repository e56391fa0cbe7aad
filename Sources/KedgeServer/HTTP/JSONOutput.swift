internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import KedgeModel
internal import NIOCore

/// Encodes JSON messages.
enum JSONOutput {
    /// The JSON text of a message, with sorted members. Escaped so that it is safe to show in a
    /// terminal.
    static func encode(_ value: some Encodable) -> ByteBuffer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return ByteBuffer(bytes: ControlCharacters.escaped(json: try encoder.encode(value)))
        } catch {
            preconditionFailure("the wire messages can be encoded: \(error)")
        }
    }
}

extension Response {
    /// A JSON response with sorted members.
    static func json(
        _ value: some Encodable, status: HTTPResponse.Status = .ok,
        contentType: String = "application/json"
    ) -> Response {
        Response(
            status: status, headers: [.contentType: contentType],
            body: ResponseBody(byteBuffer: JSONOutput.encode(value)))
    }

    /// A JSON response from encoded text.
    static func json(text: [UInt8]) -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: text)))
    }
}
