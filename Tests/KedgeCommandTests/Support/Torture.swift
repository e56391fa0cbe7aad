import Foundation

/// The load of the tests: small for every build, larger with `KEDGE_TORTURE=1`.
enum Torture {
    static let isOn = ProcessInfo.processInfo.environment["KEDGE_TORTURE"] == "1"

    /// Size of the transferred file in mebibytes.
    static var mebibytes: Int { isOn ? 200 : 24 }
    /// The number of kills in a row.
    static var killCount: Int { isOn ? 60 : 10 }
    /// Reports the kills of a long run to the script that counts them.
    static func reportSurvived(kills: Int) { print("torture: \(kills) kills survived") }
    /// The time limit of one transfer.
    static var limit: Duration { .seconds(isOn ? 600 : 60) }
}
