internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// One line about one transfer.
struct TransferBar {
    /// Times and bytes that a snapshot does not have, because they are about what was shown before.
    struct Past {
        /// Confirmed bytes when this command took the transfer up.
        var startByteCount: Int64
        /// When bytes of it moved first.
        var firstMoved: ContinuousClock.Instant?
        /// When bytes of it moved last, or it was taken up.
        var lastMoved: ContinuousClock.Instant
    }

    /// Kinds of text that may have a colour.
    enum Mood: String {
        case plain = ""
        case good = "32"
        case waiting = "33"
        case bad = "31"
    }

    /// Time without a byte after which a transfer counts as stalled.
    static let stallTime = Duration.seconds(5)
    /// Time over which bytes must have moved before the remaining time is worth showing.
    static let warmUp = Duration.seconds(2)
    /// Time for which a bar says that it did not begin at zero.
    private static let resumeNoteTime = Duration.seconds(5)
    /// Cells of the narrowest bar, with its brackets.
    private static let minBarCells = 8

    let snapshot: TransferSnapshot
    var past: Past?
    var now = ContinuousClock.now
    /// Text in place of `done`.
    var ending: String?

    /// Returns the line in at most this many cells. Where there is not enough room, the bar goes
    /// first, then the size; rate and remaining time stay.
    func text(cells: Int, isColored: Bool) -> String {
        let nameCells = max(10, cells / 4)
        let head =
            TerminalText.fitted(printable(snapshot.name), to: nameCells) + " "
            + Self.percent(snapshot)
        let headCells = nameCells + 5
        var facts = self.facts(withSize: true)
        if headCells + 2 + TerminalText.width(facts.text) > cells {
            facts = self.facts(withSize: false)
        }
        let room = cells - headCells - 3 - TerminalText.width(facts.text)
        let bar = room >= Self.minBarCells ? " [\(Self.bar(snapshot, cells: room - 2))]" : ""
        let tail = TerminalText.prefix(
            facts.text, cells: max(0, cells - headCells - 2 - TerminalText.width(bar)))
        return head + bar + "  " + (isColored ? Self.colored(tail, facts.mood) : tail)
    }

    /// One line for a log: name, percentage and facts.
    var summary: String {
        "\(printable(snapshot.name))  \(Self.percent(snapshot))  \(facts(withSize: true).text)"
    }

    private func facts(withSize: Bool) -> (text: String, mood: Mood) {
        switch snapshot.state {
        case .uploading, .downloading:
            // During a retry, its reason matters more than the rate.
            if snapshot.errorCode != nil { return (printable(snapshot.message), .waiting) }
            return moving(withSize: withSize)
        case .completed:
            let size = ByteText.size(snapshot.totalBytes ?? snapshot.bytesTransferred)
            let done = snapshot.verification == .unverified ? "done, unverified" : "done"
            return ("\(size)  \(ending ?? done)", .good)
        case .queued, .paused: return (printable(snapshot.message), .waiting)
        case .failed, .canceled: return (printable(snapshot.message), .bad)
        }
    }

    private func moving(withSize: Bool) -> (text: String, mood: Mood) {
        var parts: [String] = []
        if withSize {
            let total = snapshot.totalBytes.map { "/" + ByteText.size($0) } ?? ""
            parts.append(ByteText.size(snapshot.bytesTransferred) + total)
        }
        if let compared = snapshot.comparedBytes {
            let share = Self.percentage(compared, of: snapshot.totalBytes)
            return ((parts + ["compared \(share) with the server"]).joined(separator: "  "), .plain)
        }
        if let past, past.lastMoved.duration(to: now) >= Self.stallTime {
            let seconds = Int(past.lastMoved.duration(to: now) / .seconds(1))
            return ((parts + ["stalled \(seconds) s"]).joined(separator: "  "), .waiting)
        }
        if let past, past.startByteCount > 0, let first = past.firstMoved,
            first.duration(to: now) < Self.resumeNoteTime
        {
            parts = ["resumed at \(Self.percentage(past.startByteCount, of: snapshot.totalBytes))"]
        }
        if let rate = snapshot.bytesPerSecond { parts.append(ByteText.rate(rate)) }
        let isWarm = past.map { $0.firstMoved.map { $0.duration(to: now) >= Self.warmUp } ?? false }
        if isWarm ?? true, let rest = snapshot.timeRemaining {
            parts.append("ETA " + ByteText.time(rest))
        }
        return (parts.joined(separator: "  "), .plain)
    }

    private static func bar(_ snapshot: TransferSnapshot, cells: Int) -> String {
        let filled = Int(Double(cells) * fraction(snapshot))
        return String(repeating: "=", count: filled)
            + String(repeating: " ", count: cells - filled)
    }

    private static func fraction(_ snapshot: TransferSnapshot) -> Double {
        if snapshot.state == .completed { return 1 }
        guard let total = snapshot.totalBytes, total > 0 else { return 0 }
        return min(1, Double(snapshot.bytesTransferred) / Double(total))
    }

    private static func percent(_ snapshot: TransferSnapshot) -> String {
        String(format: "%3d%%", Int(fraction(snapshot) * 100))
    }

    static func percentage(_ byteCount: Int64, of total: Int64?) -> String {
        guard let total, total > 0 else { return ByteText.size(byteCount) }
        return "\(Int(min(1, Double(byteCount) / Double(total)) * 100)) %"
    }

    static func colored(_ text: String, _ mood: Mood) -> String {
        mood == .plain ? text : "\u{1B}[\(mood.rawValue)m\(text)\u{1B}[0m"
    }
}
