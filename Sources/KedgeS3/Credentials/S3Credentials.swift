package import KedgeModel

/// A text that appears in no description, dump or reflection.
package struct Secret: Hashable, Sendable {
    /// The text itself. Only signatures and the requests for credentials need it.
    let text: String

    package init(_ text: String) { self.text = text }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// What requests are signed with.
package struct S3Credentials: Hashable, Sendable {
    package let accessKeyID: String
    package let secretAccessKey: Secret
    /// Goes along with credentials that last for a while.
    package let sessionToken: Secret?
    /// When they stop being accepted; nil when they last.
    package let expiresAt: Timestamp?

    package init(
        accessKeyID: String, secretAccessKey: Secret, sessionToken: Secret? = nil,
        expiresAt: Timestamp? = nil
    ) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
        self.expiresAt = expiresAt
    }
}

/// Why there are no credentials. The text names places and never contains a secret.
package struct CredentialsError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

/// Hands out credentials for each request.
package protocol CredentialsProvider: Sendable {
    /// Credentials that are good now.
    ///
    /// - Throws: ``CredentialsError`` when there are none.
    func credentials() async throws -> S3Credentials
    /// A store refused these: the next ones are fetched anew.
    func forget(_ refused: S3Credentials) async
}

/// The same credentials for ever.
package struct FixedCredentials: CredentialsProvider {
    private let value: S3Credentials

    package init(_ value: S3Credentials) { self.value = value }

    package func credentials() async throws -> S3Credentials { value }
    package func forget(_ refused: S3Credentials) async {}
}

/// One place in which credentials may be found.
protocol CredentialsSource: Sendable {
    /// The credentials; nil when this place is not in use.
    func load() async throws -> S3Credentials?
}
