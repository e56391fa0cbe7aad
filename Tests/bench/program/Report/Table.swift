internal import Foundation

/// The rows as text for people.
struct Table {
    let rows: [Row]

    private static let head = [
        "", "unit", "median", "min-max", "peer", "peer's", "ratio", "floor", "of floor", "target",
        "",
    ]

    /// Columns wide enough for all, then the formulas behind the floors.
    var text: String {
        let cells = [Self.head] + rows.map(Self.cells)
        let widths = Self.head.indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
        var lines = cells.map { row in
            let padded = row.indices.map { column in
                let space = String(repeating: " ", count: widths[column] - row[column].count)
                return Self.isText(column) ? row[column] + space : space + row[column]
            }
            return padded.joined(separator: "  ").trimmingTrailingSpaces
        }
        let formulas = rows.compactMap { row in row.floor.map { "\(row.id): \($0.formula)" } }
        if !formulas.isEmpty { lines += ["", "Floors:"] + formulas.map { "  " + $0 } }
        return lines.joined(separator: "\n")
    }

    private static func isText(_ column: Int) -> Bool {
        ["", "unit", "peer", "target"].contains(head[column])
    }

    private static func cells(_ row: Row) -> [String] {
        let least = row.ours.values.min() ?? .nan
        let most = row.ours.values.max() ?? .nan
        let target = Target.of(row)
        return [
            row.title, row.unit.rawValue, row.ours.median.formatted,
            row.ours.values.count > 1 ? "\(least.formatted)-\(most.formatted)" : "",
            row.peer?.name ?? "", row.peer?.median.formatted ?? "",
            row.ratio?.formatted ?? "", row.floor?.value.formatted ?? "",
            row.floorRatio?.formatted ?? "", target?.text ?? "",
            target.map { $0.isMet(by: row) ? "met" : "not met" } ?? "",
        ]
    }
}

extension Double {
    /// The number with its significant digits.
    var formatted: String {
        switch abs(self) {
        case 100...: String(format: "%.0f", self)
        case 10..<100: String(format: "%.1f", self)
        default: String(format: "%.2f", self)
        }
    }
}

extension String {
    fileprivate var trimmingTrailingSpaces: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
