/// Another process listens on the service's address.
package struct AddressInUse: Error, CustomStringConvertible {
    package let host: String
    package let port: Int
    /// The setting that names the address.
    package var setting = "--port"

    package var description: String {
        "\(host):\(port) is in use; choose another with \(setting)."
    }
}
