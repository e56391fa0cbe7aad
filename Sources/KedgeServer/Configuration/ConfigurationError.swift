/// An invalid setting. The message names it and states the valid values.
package struct ConfigurationError: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
