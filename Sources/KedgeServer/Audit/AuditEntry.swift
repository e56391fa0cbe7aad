package import KedgeModel
internal import NIOCore

/// A line of the audit log. Members without a value are absent. None has a secret: no token, no
/// text of a link and no query.
package struct AuditEntry: Encodable, Sendable {
    package var time: Timestamp
    package var requestId: String
    /// The client's IPv4 address or IPv6 network.
    package var client: String?
    /// How the principal has proven who it is.
    package var principal: String?
    /// The principal's own owner.
    package var owner: String?
    /// The owner that the principal acts for.
    package var actingFor: String?
    package var tokenId: String?
    package var linkId: String?
    /// Method and pattern of the route.
    package var action: String
    /// The path of the request.
    package var object: String
    package var sessionId: String?
    package var fileId: String?
    /// The token or owner that an operator has made, revoked, changed or asked for.
    package var target: String?
    /// The changes of an owner that the request demands, such as `block`.
    package var change: String?
    package var status: Int
    /// The code of the error; nil for a success.
    package var code: String?
    /// Number of refusals before this one that have no line of their own.
    package var suppressed: Int?

    package init(
        time: Timestamp, requestId: String, action: String, object: String, status: Int
    ) {
        self.time = time
        self.requestId = requestId
        self.action = action
        self.object = object
        self.status = status
    }

    /// The entry as one line of JSON, with the line feed.
    var line: [UInt8] { Array(JSONOutput.encode(self).readableBytesView) + [UInt8(ascii: "\n")] }
}
