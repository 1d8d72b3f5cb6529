# The same cluster as a person would write it today.
variable "zone" {
  type    = string
  default = "us-central1-a"
}

locals {
  workers = {
    small = { machine = "n2-standard-8", max = 20 }
    large = { machine = "n2-standard-32", max = 4 }
  }
}

resource "google_container_cluster" "rl" {
  name                     = "rl"
  location                 = var.zone
  remove_default_node_pool = true
  initial_node_count       = 1
}

resource "google_container_node_pool" "workers" {
  for_each       = local.workers
  name           = "cpu-${each.key}"
  cluster        = google_container_cluster.rl.name
  node_locations = [var.zone]

  autoscaling {
    min_node_count = 0
    max_node_count = each.value.max
  }

  node_config {
    machine_type = each.value.machine
    disk_size_gb = 100
    spot         = true
    labels = {
      team = "rl"
    }
    taint {
      key    = "team"
      value  = "rl"
      effect = "NO_SCHEDULE"
    }
  }
}

resource "google_container_node_pool" "l4" {
  name           = "l4"
  cluster        = google_container_cluster.rl.name
  node_locations = [var.zone]
  node_count     = 2

  node_config {
    machine_type = "g2-standard-24"
    guest_accelerator {
      type  = "nvidia-l4"
      count = 2
    }
  }
}
