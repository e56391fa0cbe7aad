internal import ArgumentParser

/// `kedge admin`
struct Admin: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Manage a service.", subcommands: [Owners.self])
}
