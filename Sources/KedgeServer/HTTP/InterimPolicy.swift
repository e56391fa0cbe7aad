internal import HTTPTypes

/// Whether uploads get 104 responses with their progress.
///
/// Some proxies mistake a 104 for the final response. The body then never reaches the service, and
/// the client never gets the result. HTTP/1.0 requests never get a 104, see
/// `HTTPRequestHead.normalize()`.
package enum InterimPolicy: String, Sendable {
    /// Sends them unless the request shows that it came through a proxy.
    case auto
    case always
    case never

    func allows(_ fields: HTTPFields) -> Bool {
        switch self {
        case .auto: !fields.showProxy
        case .always: true
        case .never: false
        }
    }
}
