/// The server's last answer, for diagnosis.
package struct ServerAnswer: Sendable, Equatable {
    package let status: Int
    package var requestID: String?
    /// Host and port of the URL that answered; nil where unknown.
    package var host: String?
    package var port: Int?

    package init(
        status: Int,
        requestID: String? = nil,
        host: String? = nil,
        port: Int? = nil
    ) {
        self.status = status
        self.requestID = requestID
        self.host = host
        self.port = port
    }

    var hostAndPort: String? {
        guard let host, let port else { return nil }
        return "\(host):\(port)"
    }
}
