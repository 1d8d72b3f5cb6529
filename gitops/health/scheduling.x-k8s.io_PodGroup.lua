-- PodGroup of the scheduler plugins, v1alpha1.
local meanings = {
  Scheduled = "Healthy",
  Running = "Healthy",
  Finished = "Healthy",
  Failed = "Degraded",
  Unknown = "Unknown",
}
local phase = ""
if obj.status ~= nil then
  phase = obj.status.phase or ""
end
local status = meanings[phase] or "Progressing"
if phase == "" then
  phase = "Not started"
end
local message = phase
if obj.status ~= nil and obj.status.message ~= nil and obj.status.message ~= "" then
  message = phase .. ": " .. obj.status.message
end
return {status = status, message = message}
