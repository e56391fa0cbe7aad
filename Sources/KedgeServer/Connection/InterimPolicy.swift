internal import HTTPTypes

/// Whether uploads are told their progress in 104 answers, which some proxies take for the final
/// answer: the body then never reaches the service, and the client never learns the end.
///
/// To HTTP/1.0 there is none in any case: see `HTTPRequestHead.spellOut()`.
package enum InterimPolicy: String, Sendable {
    /// Not where a request shows that it came through a proxy.
    case auto
    case always
    case never

    /// - Parameter fields: Those of the request that is answered.
    func allows(_ fields: HTTPFields) -> Bool {
        switch self {
        case .auto: !fields.showProxy
        case .always: true
        case .never: false
        }
    }
}
