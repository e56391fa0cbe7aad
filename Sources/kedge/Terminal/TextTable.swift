internal import KedgeModel

/// Rows in aligned columns, with a header. The last column is not padded.
struct TextTable {
    /// How a column is aligned.
    enum Alignment {
        case left
        case right
    }

    private var header: [String]
    private let alignments: [Alignment]
    private var rows: [[String]] = []

    init(_ columns: [(name: String, alignment: Alignment)]) {
        header = columns.map(\.name)
        alignments = columns.map(\.alignment)
    }

    /// Adds a row; control characters are removed from its texts.
    mutating func add(_ row: [String]) { rows.append(row.map { printable($0) }) }

    /// All lines, for a terminal cut to its width; empty without rows.
    var text: String {
        guard StandardOutput.isTerminal else { return wholeText }
        let cells = StandardError.columnCount
        return wholeText.split(separator: "\n")
            .map { TerminalText.prefix(String($0), cells: cells) + "\n" }.joined()
    }

    private var wholeText: String {
        guard !rows.isEmpty else { return "" }
        let all = [header] + rows
        let widths = header.indices.map { column in
            all.map { TerminalText.width($0[column]) }.max() ?? 0
        }
        return all.map { row in
            row.indices.map { column in
                let padding = String(
                    repeating: " ", count: widths[column] - TerminalText.width(row[column]))
                switch alignments[column] {
                case .right: return padding + row[column]
                case .left: return column == row.count - 1 ? row[column] : row[column] + padding
                }
            }.joined(separator: "  ") + "\n"
        }.joined()
    }
}
