/// The reason why a bucket cannot be used before any request to it: its URL is malformed, or there
/// are no credentials. The text, one line, names sources and never contains a secret.
package struct S3SetupError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
