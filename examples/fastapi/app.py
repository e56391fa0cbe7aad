"""A service whose users upload to Kedge: it creates their sessions, and their bytes do not pass through it.

    KEDGE_SERVER=http://127.0.0.1:8080 uvicorn app:app --port 8000

The header X-User stands for a login. A user sends

    POST /uploads {"name": …, "size": …}      the address to send the chunks to
    GET /uploads/{id}                         the state of one upload
    GET /files                                the finished files of this user with their digests

The chunks and the finalize go from the user to Kedge.
"""

import os
import sqlite3
import uuid
from typing import Annotated, Any

import httpx
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

SERVER = os.environ.get("KEDGE_SERVER", "http://127.0.0.1:8080")
kedge = httpx.Client(base_url=SERVER, timeout=30)
# Threads share the connection: each statement is a transaction of its own.
rows = sqlite3.connect(os.environ.get("UPLOADS_DATABASE", "uploads.sqlite"),
                       check_same_thread=False, isolation_level=None)
rows.execute("CREATE TABLE IF NOT EXISTS upload"
             " (session TEXT PRIMARY KEY, user TEXT, name TEXT, file TEXT, sha256 TEXT)")
app = FastAPI()
User = Annotated[str, Header(alias="X-User")]


class NewUpload(BaseModel):
    name: str
    size: int


def ask(method: str, path: str, **options: Any) -> dict[str, Any]:
    """Sends a request to Kedge. A refusal keeps its status and code."""
    try:
        response = kedge.request(method, path, **options)
    except httpx.TransportError as error:
        raise HTTPException(503, "UNAVAILABLE") from error
    if response.is_error:
        raise HTTPException(response.status_code, response.json()["code"])
    return response.json()


@app.post("/uploads", status_code=201)
def create(new: NewUpload, user: User) -> dict[str, Any]:
    session = ask("POST", "/uploads/sessions", headers={"Idempotency-Key": str(uuid.uuid4())},
                  json={"fileName": new.name, "fileSize": new.size, "metadata": {"user": user}})
    identifier = session["sessionId"]
    rows.execute("INSERT INTO upload (session, user, name) VALUES (?, ?, ?)", (identifier, user, new.name))
    return {"id": identifier, "url": f"{SERVER}/uploads/sessions/{identifier}",
            "chunkSize": session["chunkSize"], "totalChunks": session["totalChunks"]}


@app.get("/uploads/{session}")
def state(session: str, user: User) -> dict[str, Any]:
    if not rows.execute("SELECT 1 FROM upload WHERE session = ? AND user = ?", (session, user)).fetchone():
        raise HTTPException(404)
    status = ask("GET", f"/uploads/sessions/{session}", params={"chunks": "ranges"})
    if status["state"] == "completed":
        rows.execute("UPDATE upload SET file = ?, sha256 = ? WHERE session = ?",
                     (status["remoteFileId"], status["fileHashSha256"], session))
    return {"state": status["state"], "receivedBytes": status["receivedBytes"]}


@app.get("/files")
def files(user: User) -> list[dict[str, str]]:
    unfinished = "SELECT session FROM upload WHERE user = ? AND file IS NULL"
    for (session,) in rows.execute(unfinished, (user,)).fetchall():
        try:
            state(session, user)
        except HTTPException as refusal:
            if refusal.status_code not in (404, 410):
                raise
            rows.execute("DELETE FROM upload WHERE session = ?", (session,))  # It has expired.
    finished = "SELECT name, file, sha256 FROM upload WHERE user = ? AND file IS NOT NULL ORDER BY rowid"
    return [{"name": name, "url": f"{SERVER}/files/{file}", "sha256": sha256}
            for name, file, sha256 in rows.execute(finished, (user,))]
