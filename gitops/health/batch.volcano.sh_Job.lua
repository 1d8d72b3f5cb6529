-- Job of Volcano, batch.volcano.sh/v1alpha1.
local meanings = {
  Completed = "Healthy",
  Failed = "Degraded",
  Aborted = "Degraded",
  Terminated = "Degraded",
}
local phase = ""
if obj.status ~= nil then
  phase = (obj.status.state ~= nil and obj.status.state.phase) or ""
end
local status = meanings[phase] or "Progressing"
if phase == "" then
  phase = "Not started"
end
local message = phase
if obj.status ~= nil and obj.status.state ~= nil and obj.status.state.message ~= nil and obj.status.state.message ~= "" then
  message = phase .. ": " .. obj.status.state.message
end
return {status = status, message = message}
