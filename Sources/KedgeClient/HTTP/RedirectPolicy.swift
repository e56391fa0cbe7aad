/// The rule for answers that redirect to another address.
///
/// No case allows a step from an encrypted to an unencrypted connection, and none moves credentials
/// to another origin: ``ServerCredentials`` decides anew for each address.
package enum RedirectPolicy: Sendable, CaseIterable {
    /// Follows no redirect. For uploads in protocols that other servers share: the user names the
    /// address that gets the file.
    case refused
    /// Follows no redirect. For the native protocol, whose calls no Kedge redirects: a temporary
    /// redirect comes from an intermediary, such as a captive portal with a log-in page, and is
    /// waited out. A permanent one names the server's new address.
    case refusedAsForeign
    /// Follows redirects of every kind, with the same method. For reading a file with `GET` or
    /// `HEAD` only: there, a 303 leads to the file too, and repeating the request changes nothing.
    case followedSecurely

    /// Returns the reason for not following a redirect to the address; nil to follow it.
    package func refusal(of target: LinkedAddress) -> RedirectRefusal? {
        switch self {
        case .refused, .refusedAsForeign: .notFollowed(target: target.url)
        case .followedSecurely:
            target.isDowngrade ? .notEncrypted(target: target.url) : nil
        }
    }

    /// Whether a refused redirect with the status counts as the answer of an intermediary.
    package func isFromIntermediary(status: Int) -> Bool {
        self == .refusedAsForeign && ![301, 308].contains(status)
    }
}
