// Uses the example page as a user does: picks a file, pauses in the middle, reloads the page or resumes, and reports
// what the page shows.

const run = new URLSearchParams(location.search).get("run");
const isReload = new URLSearchParams(location.search).get("scenario") === "reload";
const element = (id) => document.getElementById(id);

async function until(condition, reason) {
  const deadline = Date.now() + 30000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`not ${reason}; the page says: ${element("message").value}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function pick() {
  const content = await (await fetch("/source")).blob();
  const files = new DataTransfer();
  files.items.add(new File([content], "source.bin", { type: "application/octet-stream", lastModified: 0 }));
  element("file").files = files.files;
  element("file").dispatchEvent(new Event("change"));
}

const part = () => element("progress").value / element("progress").max;

async function use() {
  await until(() => window.tus, "loaded");
  const pausedAt = Number(sessionStorage.getItem("pausedAt"));
  if (pausedAt) {
    await pick();
    await until(() => element("message").value.startsWith("http"), "uploaded after a reload");
    return { pausedAt, url: element("message").value };
  }
  await pick();
  await until(() => part() > 0.3, "a third of the way");
  element("pause").click();
  await until(() => !element("resume").disabled, "paused");
  const stoppedAt = part();
  await new Promise((resolve) => setTimeout(resolve, 500));
  if (part() !== stoppedAt || stoppedAt >= 1) throw new Error(`paused at ${stoppedAt}, then at ${part()}`);
  if (isReload) {
    sessionStorage.setItem("pausedAt", stoppedAt);
    location.reload();
    return null;
  }
  element("resume").click();
  await until(() => element("message").value.startsWith("http"), "uploaded");
  return { pausedAt: stoppedAt, url: element("message").value };
}

const report = await use().then((answer) => ({ answer }), (error) => ({ error: `${error}` }));
if (report.answer !== null) {
  await fetch("/report", { method: "POST", body: JSON.stringify({ run, ...report }) });
}
