import Foundation

/// How much the tests ask for: little for every build, more with `KEDGE_TORTURE=1`.
enum Torture {
    static let isOn = ProcessInfo.processInfo.environment["KEDGE_TORTURE"] == "1"

    /// Size of a file that has to get through.
    static var mebibytes: Int { isOn ? 200 : 24 }
    /// Kills in a row.
    static var killCount: Int { isOn ? 60 : 10 }
    /// Tells whoever counts what a long run tried.
    static func reportSurvived(kills: Int) { print("torture: \(kills) kills survived") }
    /// How long one transfer may take.
    static var limit: Duration { .seconds(isOn ? 600 : 60) }
}
