internal import KedgeModel

/// The identifier of a link, by which its uses are counted and by which it can be revoked.
package struct LinkID: RandomIdentifier {
    /// The 32 lowercase hexadecimal digits.
    package let text: String
    /// Wraps text that is already checked; unchecked text goes through `init?(_:)`.
    package init(wellFormed text: String) { self.text = text }
}
