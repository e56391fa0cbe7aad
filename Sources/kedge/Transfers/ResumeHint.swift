internal import KedgeModel

/// What to type to go on after Ctrl-C: never a secret, and nothing that would begin anew.
struct ResumeHint {
    /// The command as it was typed.
    let arguments: [String]
    /// The one transfer that is not finished; nil when there are several, or none was begun.
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
                // What is finished would be sent another time.
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
            // The record knows its server and URL; this goes on and does not begin anew.
            words = [arguments.first ?? "kedge", "transfers", "resume", id.text] + stateDirectory
        }
        let shown = words.map { URLSecrets.hidden(in: $0) }
        let needs =
            (hasToken ? ", with the token in KEDGE_TOKEN" : "")
            + (shown == words ? "" : ", with what *** stands for filled in")
        return "Saved. To go on\(needs): "
            + shown.map(ShellText.quoted).joined(separator: " ")
    }
}
