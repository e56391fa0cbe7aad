internal import KedgeModel

/// The command that continues after Ctrl-C, without secrets and options that would start over.
struct ResumeHint {
    /// Cells up to which the command is written out. A longer one names many files.
    private static let maxCells = 300

    /// The command as the user typed it.
    let arguments: [String]
    /// The one unfinished transfer; nil if there are several or none.
    let unfinished: TransferID?

    var text: String {
        var words: [String] = []
        var stateDirectory: [String] = []
        var hasToken = false
        var rest = arguments.prefix { $0 != "--" }
        let positional = arguments[rest.endIndex...]
        while let word = rest.popFirst() {
            let name = word.prefix { $0 != "=" }
            let hasValue = name.endIndex < word.endIndex
            switch name {
            case "--token":
                hasToken = true
                if !hasValue { _ = rest.popFirst() }
            case "--again":
                // With this option, finished files would be sent again.
                continue
            case "--state-directory":
                let taken = [word] + (hasValue ? [] : rest.popFirst().map { [$0] } ?? [])
                stateDirectory = taken
                words += taken
            default:
                words.append(word)
            }
        }
        words += positional
        let steers = arguments.dropFirst().first == "transfers"
        let hasSecret = words.contains { URLSecrets.hidden(in: $0) != $0 }
        if steers || hasSecret, let id = unfinished {
            // The record has the server and URL; this command resumes the transfer.
            words = [arguments.first ?? "kedge", "transfers", "resume", id.text] + stateDirectory
        }
        let shown = words.map { URLSecrets.hidden(in: $0) }
        let needs =
            (hasToken ? ", with the token in KEDGE_TOKEN" : "")
            + (shown == words ? "" : ", with *** replaced by the hidden text")
        let command = shown.map(ShellText.quoted).joined(separator: " ")
        return TerminalText.width(command) <= Self.maxCells
            ? "Saved. To resume\(needs): \(command)"
            : "Saved. To resume, run the same command again."
    }
}
