/// A server for the tests is not there or does not do what it is told; the text says what to do about it.
package struct ServersError: Error, CustomStringConvertible {
    /// What is wrong.
    package let description: String

    init(_ description: String) { self.description = description }
}
