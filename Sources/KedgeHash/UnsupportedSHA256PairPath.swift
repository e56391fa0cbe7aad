/// A path was selected that the processor or the system does not support.
package struct UnsupportedSHA256PairPath: Error, Equatable, CustomStringConvertible {
    package let path: SHA256PairPath

    package var description: String {
        let supported = SHA256PairPath.supported.map(\.rawValue).joined(separator: ", ")
        return "\(path.rawValue) is not supported by this processor, only \(supported)"
    }
}
