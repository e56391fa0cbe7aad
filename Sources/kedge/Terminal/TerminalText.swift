internal import CWidth
internal import Foundation

/// Text measured in the cells of a terminal, of which an East Asian character takes two and a
/// combining mark none.
///
/// The widths are those of wcwidth(3) in the locale C.UTF-8, whatever the user's locale. Emoji that
/// are joined to one picture count one by one, because many terminals draw them one by one. So a
/// terminal never draws text wider than it counts here.
enum TerminalText {
    /// Number of cells that the text takes.
    static func width(_ text: String) -> Int {
        withWidths { width in text.unicodeScalars.reduce(0) { $0 + width($1) } }
    }

    /// Returns the longest beginning of the text that fits into the cells, without cutting a
    /// character from its combining marks.
    static func prefix(_ text: String, cells: Int) -> String {
        withWidths { width in
            var result = ""
            var taken = 0
            for character in text {
                taken += character.unicodeScalars.reduce(0) { $0 + width($1) }
                guard taken <= cells else { break }
                result.append(character)
            }
            return result
        }
    }

    /// Returns the text in exactly this many cells, shortened with `…` or followed by spaces.
    static func fitted(_ text: String, to cells: Int) -> String {
        var result = text
        if width(text) > cells { result = prefix(text, cells: cells - 1) + "…" }
        return result + String(repeating: " ", count: max(0, cells - width(result)))
    }

    /// Calls with a function for the width of one scalar.
    private static func withWidths<Result>(_ body: ((Unicode.Scalar) -> Int) -> Result) -> Result {
        UnicodeLocale.run {
            body { width(of: $0) }
        }
    }

    private static func width(of scalar: Unicode.Scalar) -> Int {
        // Tables of older systems lack new characters, and all but ASCII without a locale.
        let cells = scalar.isASCII ? 1 : Int(wcwidth(wchar_t(scalar.value)))
        // Terminals differ: the selector of emoji presentation widens some characters, and a
        // letter of a flag may take as much as the flag.
        if scalar == "\u{FE0F}" { return 1 }
        if (0x1F1E6...0x1F1FF).contains(scalar.value) { return 2 }
        return cells < 0 ? 2 : cells
    }
}
