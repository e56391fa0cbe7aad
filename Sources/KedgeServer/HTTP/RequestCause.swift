internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import NIOCore

/// Errors of the libraries that read requests, as text for the log.
enum RequestCause {
    /// Returns the reason, without names of the libraries' types and calls.
    static func text(_ error: any Error) -> String {
        switch error {
        case let error as IOError:
            return "\(String(cString: strerror(error.errnoCode))) [\(error.errnoCode)]"
        case let error as HTTPError:
            return "status \(error.status.code)" + (error.body.map { ": \($0)" } ?? "")
        case let error as DecodingError:
            return text(decoding: error)
        default:
            return CauseText.of(error)
        }
    }

    private static func text(decoding error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context):
            return "\(member(context.codingPath + [key])) is missing"
        case .valueNotFound(_, let context):
            return "\(member(context.codingPath)) has no value"
        case .typeMismatch(_, let context):
            return "\(member(context.codingPath)) has a value of another kind"
        case .dataCorrupted(let context):
            // Without a path, Foundation's text is about the JSON. With one, it may name a type.
            return context.codingPath.isEmpty
                ? context.debugDescription : "\(member(context.codingPath)) has a wrong value"
        @unknown default:
            return "the body cannot be decoded"
        }
    }

    private static func member(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "the body" : "the member " + path.map(\.stringValue).joined(separator: ".")
    }
}
