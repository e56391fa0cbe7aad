internal import ArgumentParser

/// Which files of a folder take part.
struct FolderOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Of a folder, only files that match; may be repeated.", valueName: "pattern"))
    var include: [String] = []
    @Option(
        help: ArgumentHelp(
            "Of a folder, no files that match; may be repeated.",
            discussion: """
                A pattern without / matches the name of the file or of a folder above it: '*.tmp', \
                '.*' for everything hidden. A pattern with / matches from the folder on: \
                'cache/**'. ** stands for any number of folders.
                """, valueName: "pattern"))
    var exclude: [String] = []
    @Flag(help: "Print the files that take part; transfer nothing.") var dryRun = false

    var filter: PathFilter {
        PathFilter(
            included: include.map { PathPattern($0) }, excluded: exclude.map { PathPattern($0) })
    }
}

/// Decides by the path below the folder.
struct PathFilter: Sendable {
    var included: [PathPattern] = []
    var excluded: [PathPattern] = []

    /// Whether a file takes part.
    func accepts(_ path: String) -> Bool {
        !excludes(path) && (included.isEmpty || included.contains { $0.matches(path) })
    }

    /// Whether a file or everything in a folder is left out.
    func excludes(_ path: String) -> Bool { excluded.contains { $0.matches(path) } }
}
