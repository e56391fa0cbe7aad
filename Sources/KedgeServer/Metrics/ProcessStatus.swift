internal import Foundation
internal import KedgeMetrics

/// The state of this process as the kernel shows it below `/proc`; empty on other systems.
enum ProcessStatus {
    static func samples() -> [MetricSample] {
        var samples: [MetricSample] = []
        if let pages = residentPageCount() {
            let pageSize = Double(sysconf(Int32(_SC_PAGESIZE)))
            samples.append(MetricSample(.processResidentMemory, Double(pages) * pageSize))
        }
        // A missing folder is no error: the value is left out.
        if let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            samples.append(MetricSample(.processOpenDescriptors, Double(names.count)))
        }
        return samples
    }

    /// The second number of `/proc/self/statm`.
    private static func residentPageCount() -> Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else {
            return nil
        }
        let numbers = text.split(separator: " ")
        return numbers.count > 1 ? Int(numbers[1]) : nil
    }
}
