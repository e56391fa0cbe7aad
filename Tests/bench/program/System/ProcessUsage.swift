internal import Foundation
internal import Glibc

/// The usage of processes, from /proc (proc(5)).
struct ProcessUsage {
    /// The process and its children, such as the workers of a server.
    let ids: [pid_t]

    init(of id: pid_t) {
        ids = [id] + Self.children(of: id)
    }

    /// User and system time so far, in seconds. The kernel counts in hundredths.
    var cpuSeconds: Double {
        ids.map(Self.cpuSeconds).reduce(0, +)
    }

    /// Maximum resident size so far, in KiB; of several processes the sum.
    var peakKiB: Int {
        ids.map { Self.status($0, "VmHWM:") }.reduce(0, +)
    }

    /// Resident size now, in KiB; of several processes the sum.
    var residentKiB: Int {
        ids.map { Self.status($0, "VmRSS:") }.reduce(0, +)
    }

    private static func children(of id: pid_t) -> [pid_t] {
        text("/proc/\(id)/task/\(id)/children").split(separator: " ").compactMap { pid_t($0) }
    }

    private static func cpuSeconds(_ id: pid_t) -> Double {
        // The name, in parentheses, may contain spaces. The text after it can be split safely.
        guard let rest = text("/proc/\(id)/stat").split(separator: ")").last else { return 0 }
        let fields = rest.split(separator: " ")
        // Fields 14 and 15 of the line; state, the first one here, is field 3.
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12])
        else { return 0 }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    private static func status(_ id: pid_t, _ name: String) -> Int {
        for line in text("/proc/\(id)/status").split(separator: "\n") where line.hasPrefix(name) {
            return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
                ?? 0
        }
        return 0
    }

    /// The text of a file; empty for a process that has ended and so uses nothing.
    private static func text(_ path: String) -> String {
        (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }
}
