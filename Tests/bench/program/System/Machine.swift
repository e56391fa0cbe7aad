internal import Foundation
internal import Glibc

/// The machine on which the numbers were measured.
struct Machine: Encodable {
    let cores: Int
    let processor: String
    let memoryMiB: Int
    let kernel: String

    static var coreCount: Int { sysconf(Int32(_SC_NPROCESSORS_ONLN)) }

    init() {
        cores = Self.coreCount
        memoryMiB = (sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))) >> 20
        // Unknown facts do not prevent a measurement.
        let facts = (try? TextFile.read("/proc/cpuinfo")) ?? ""
        let model = facts.split(separator: "\n").first { $0.hasPrefix("model name") }
        processor =
            model?.split(separator: ":").last.map { $0.drop { $0 == " " } }
            .map(String.init) ?? "unknown"
        kernel = ((try? TextFile.read("/proc/sys/kernel/osrelease")) ?? "unknown")
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Raises the limit of open files of this process and its children to the permitted maximum.
    static func raiseFileLimit() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
